/*
  What belongs to the process and not to one matrix: the options that are read once, the device and its stream,
  counters, events. All of it is one struct, HybGlueState, which registration clears.
*/
#ifndef AIJHYBRIDGPU_PROCESS_H
#define AIJHYBRIDGPU_PROCESS_H

#include <petscmat.h>
#include <petsc/private/matimpl.h>
#include "aijhybridgpu/private/hybcomm.h"
#include "aijhybridgpu/private/hybmat.h"
#include "aijhybridgpu/private/hybspmv.h"

typedef enum {
  HYB_BACKEND_AUTO,
  HYB_BACKEND_HOST,
  HYB_BACKEND_CUDA
} HybBackendChoice;

/* Choices that a matrix inherits from the process-wide options and may override under its prefix */
typedef struct {
  PetscInt backend; /* HybBackendChoice */
  char     spgemm[HYB_NAME_LENGTH];
  char     spmv[HYB_NAME_LENGTH];
  PetscInt width; /* rows that the method rowmerge merges at once; 0: it chooses */
} HybChoices;

/* Counts that every run has */
typedef struct {
  PetscLogDouble todevice, tohost;   /* bytes that copies took over the bus */
  PetscCount     ntodevice, ntohost; /* copies over the bus */
  PetscCount     mults, assemblies, products, fallbacks, fallbacksasked, deviceops;
  PetscCount     gamg[HYB_GAMG_COUNTS];
  /* bytes of the device that a set-up of multigrid was expected to come to, the most of all */
  size_t     planned;
  PetscCount stagedmults; /* products on the device that had a vector of the host */
  /* products of parallel matrices, vectors on the device, for which other processes' entries came through the host */
  PetscCount     hosthalos;
  PetscLogDouble hosthalobytes; /* bytes of these entries */
  char           halofrom[96];  /* which transport they took, and why */
  /* operations that -mat_aijhybridgpu_device_min left on the host; belowminmost: nonzeros of the largest of them */
  PetscCount belowmin, belowminmost;
  char       methods[512]; /* names of the methods that computed products, colon-separated */
  char       parents[32];  /* the algorithm of AIJ that the program last asked for */
} HybCounts;

/* Options of the process; options.c has their names, defaults and texts */
typedef struct {
  char tuning[PETSC_MAX_PATH_LEN], cudalibrary[PETSC_MAX_PATH_LEN], viewcounts[PETSC_MAX_PATH_LEN], report[PETSC_MAX_PATH_LEN];
  /* number of the card; -1: PETSc's, else the node's processes take its cards in turn */
  PetscInt device;
  PetscInt devicemin;                       /* nonzeros; -1: by where the vectors are, see HybGlueDeviceMin() */
  PetscInt mirror, promotenever, commaware; /* commaware: 1: no, 2: yes */
  /* sendings of new values after which they move to page-locked memory; 0: they never do */
  PetscInt lockafter;
  /* bytes; fewer bytes of values do not move */
  PetscInt  lockmin;
  PetscInt  planmin;      /* nonzeros; larger patterns get a plan at their second product with a vector */
  PetscInt  multordered;  /* products with a vector after which a large matrix has a copy of its values; 0: never */
  PetscInt  narrowmin;    /* rows; a device's larger results become AIJ's without loops over rows */
  PetscInt  rowblocksmin; /* bytes of a block of rows that is kept for the next matrix; 0: 16 MiB */
  PetscInt  viewmemory, unknownoptions, ahead, smoothers, parallelproducts;
  PetscReal managedlimit, memorylimit, locklimit;
} HybOptions;

typedef struct {
  size_t n; /* how many names an object has, 0: not known */
  char   last[128];
} HybComposeUsual;

/* names in the order in which the creator of a type composes them; each begins at at[k] in text */
#define HYB_COMPOSE_ORDER 64
typedef struct {
  int            n;
  size_t         end;
  unsigned short at[HYB_COMPOSE_ORDER];
  char           text[3072];
} HybComposeOrder;
/* an object that is being made, whose list has the first n of them and no others */
typedef struct {
  PetscObject       object; /* NULL: there is none */
  HybComposeOrder  *order;
  PetscFunctionList first;
  void             *last; /* node of the list */
  int               n;
} HybComposeOrdered;

typedef enum {
  HYB_DEVICE_UNKNOWN, /* not asked yet */
  HYB_DEVICE_NONE,    /* no device can be used; whynodevice says why */
  HYB_DEVICE_READY
} HybDeviceStatus;

/* What has an event of its own, within PETSc's: OP(name, the event's name, what it is in a report; NULL: products, with
   matrices and with vectors, have records of their own, which take in more). Operations of Mat that the device may do:
   by these -log_view and the tests know that the device did it. What comes before them is part of other operations, but
   for a duplicate. MULT: with a vector, transposed or not, added or not. */
#define HYB_OP_LIST(OP)                                            \
  OP(PRODUCTSYMBOLIC, "HybProdSym", NULL)                          \
  OP(PRODUCTNUMERIC, "HybProdNum", NULL)                           \
  OP(ADOPT, "HybAdopt", "adoption of a result")                    \
  OP(CHECK, "HybCheck", "check of a pattern")                      \
  OP(COPYTO, "HybCopyTo", "copy to the device")                    \
  OP(COPYFROM, "HybCopyFr", "copy to the host")                    \
  OP(HOSTDUPLICATE, "HybHostDup", "duplicate on the host")         \
  OP(KEEPTRANSPOSE, "HybTranspose", "transpose kept for products") \
  OP(MULT, "HybMult", NULL)                                        \
  OP(SCALE, "HybScale", "MatScale")                                \
  OP(ZERO, "HybZero", "MatZeroEntries")                            \
  OP(DIAGONALSCALE, "HybDiagScale", "MatDiagonalScale")            \
  OP(GETDIAGONAL, "HybGetDiag", "MatGetDiagonal")                  \
  OP(DIAGONALSET, "HybDiagSet", "MatDiagonalSet")                  \
  OP(NORM, "HybNorm", "MatNorm")                                   \
  OP(DUPLICATE, "HybDuplicate", "MatDuplicate")                    \
  OP(COPY, "HybCopy", "MatCopy")                                   \
  OP(AXPY, "HybAXPY", "MatAXPY")                                   \
  OP(TRANSPOSE, "HybMatTrans", "MatTranspose")                     \
  OP(SUBMATRIX, "HybSubMat", "MatCreateSubMatrix")                 \
  OP(COOPATTERN, "HybCOOPattern", "MatSetPreallocationCOO")        \
  OP(COOVALUES, "HybCOOValues", "MatSetValuesCOO")                 \
  OP(CONVERT, "HybConvert", "MatConvert")                          \
  OP(DENSE, "HybDense", "product with a dense matrix")             \
  OP(ZEROS, "HybZeros", "zeros of the diagonal")                   \
  OP(NOISE, "HybNoise", "VecSetRandom")
#define HYB_OP_NUMBER(op, event, text) HYB_OP_##op,
typedef enum {
  HYB_OP_LIST(HYB_OP_NUMBER) HYB_OPS
} HybOp;

typedef struct {
  PetscLogEvent op[HYB_OPS], narrow;
} HybEvents;

typedef PetscErrorCode (*HybConverter)(Mat, MatType, MatReuse, Mat *);
/* PETSc's allocator, and who watches it while a matrix is made (petsc/allocator.c) */
typedef PetscErrorCode (*HybMallocFn)(size_t, PetscBool, int, const char[], const char[], void **);
typedef struct _HybWatcher HybWatcher;
struct _HybWatcher {
  PetscErrorCode (*malloc)(HybWatcher *, size_t, PetscBool, int, const char[], const char[], void **);
  HybWatcher *below;
};
#define HYB_WATCHED 16
/* blocks with a number for each row of a matrix (petsc/storage/rowblocks.c) */
typedef struct {
  void  *at;
  size_t bytes;
} HybRowBlock;
#define HYB_ROWBLOCKS_KEPT  8
#define HYB_ROWBLOCKS_NOTED 4 /* of one matrix */

/* Groups of options of MatSetOption() that AIJ keeps in its data; options of a group share a word there
   (petsc/frame.c) */
typedef enum {
  HYB_ASKED_ROW_ORIENTED,
  HYB_ASKED_KEEP_PATTERN,
  HYB_ASKED_IGNORE_ZEROS,
  HYB_ASKED_NEW_NONZEROS,
  HYB_ASKED_GROUPS, /* the groups before this are copied to a duplicate */
  HYB_ASKED_UNUSED = HYB_ASKED_GROUPS,
  HYB_ASKED_INODES, /* a search for inodes that finds none switches the option off as well */
  HYB_FRAME_OPTIONS
} HybAskedGroup;
#define HYB_FRAME_SETTINGS 8 /* number of options in all groups */

typedef struct {
  PetscBool registered;
  /* operations of the parents, copied from pristine objects */
  PetscBool      captured_seq, captured_mpi;
  struct _MatOps seq, mpi;
  struct _MatOps own; /* operations of the sequential type */
  struct {            /* operations that a matrix has instead if it was born on the device */
    PetscErrorCode (*copy)(Mat, Mat, MatStructure);
    PetscErrorCode (*axpy)(Mat, PetscScalar, Mat, MatStructure);
  } born;
  /* functions of the room family, which lower rooms call; registration sets them */
  PetscErrorCode (*compose)(Mat, PetscBool seq, PetscBool on);
  PetscErrorCode (*convertfrom)(Mat, MatType, MatReuse, Mat *);
  PetscErrorCode (*convertany)(Mat, MatType, MatReuse, Mat *); /* from the sequential type */
  PetscErrorCode (*convertseq)(Mat, MatType, MatReuse, Mat *); /* to it, from its parent */
  PetscErrorCode (*composeparents)(Mat, PetscBool on);
  PetscErrorCode (*productsetfromoptions[2])(Mat); /* of sequential, of parallel matrices */
  void (*storevalues)(void), (*retrievevalues)(void), (*setpreallocation)(void), (*resetpreallocation[2])(void), (*setcolumnindices)(void), (*resethash)(void), (*kron)(void), (*coopreallocation[2])(void), (*coovalues[2])(void), (*multsf)(void);
  HybConverter converters[8]; /* the parent's conversions, in the order of seq/convert.c */
  PetscBool    convertersknown;
  PetscBool    parentsnamed, conversionsnamed; /* some matrix has names of these beside those of each */
  /* zeroknown: it was tried whether zero times NaN is zero in the parent's MatScale(); zerowins: it is */
  PetscBool zeroknown, zerowins;
  /* options */
  PetscBool  optionsread;
  HybOptions options;
  HybChoices choices;
  /* counters */
  HybEvents  event;
  HybCounts  counts;
  PetscCount made; /* how many sequential matrices have been made */
  /* 1: results of AIJ's parallel A B have MAT_NO_OFF_PROC_ENTRIES, -1: they have not; 0: not tried yet */
  int productrefuses;
  /* of PETSC_COMM_WORLD, held from the first parallel matrix on, so that what it opened stays open */
  HybComm world;
  /* src/mat/report's */
  struct {
    struct _HybRecords *records; /* notes on each matrix and operation; NULL: no report was asked for */
    /* watched: the device's table with timed waits, which watch() makes; unwatched: the table that it calls */
    const HybBackend *(*watch)(const HybBackend *);
    HybBackend        watched;
    const HybBackend *unwatched;
    PetscErrorCode (*end)(void); /* in PetscFinalize(), collective */
    PetscBool atexit;            /* a handler at exit writes the report if nothing else has */
  } report;
  /* nonzeros that the host has multiplied with vectors before the device was opened */
  PetscLogDouble hostwork;
  PetscBool      toldhostvectors;
  /* device */
  HybDeviceStatus devicestatus;
  /* HybGlueExpectDevice() has looked; it found that there can be none */
  PetscBool         devicelooked, devicehopeless;
  const HybBackend *device;
  HybMem            deviceresult; /* kind of memory of the device's results */
  PetscMPIInt       processes;    /* of this node, once the device was asked for */
  int               graphs;       /* calls of MatCreateGraph() that are under way */
  char              whynodevice[512];
  PetscBool         streamknown;
  void             *stream;        /* stream of the last operation on the device */
  PetscBool         nopetscstream; /* PETSc's own device cannot be used, so the plugin has a stream of its own */
  PetscBool         onhost;        /* HybMatOnHost() */
  struct {                         /* PETSc's allocator, while it is watched (petsc/allocator.c) */
    HybMallocFn before;
    HybWatcher *top;
  } allocator;
  /* a sequential matrix's private data, kept for the next one: the allocator takes long over a block of that size */
  void *spare;
  struct { /* are an object's functions by name a list of nodes? (petsc/names.c) */
    PetscBool asked, nodes;
    /* of a MATMPIAIJ and a MATSEQAIJ */
    HybComposeUsual   usual[2];
    HybComposeOrder   order[2];
    HybComposeOrdered now;
    PetscErrorCode (*compose)(PetscObject, const char[], void (*)(void)); /* PETSc's */
  } names;
  /* places in AIJ's data that were found (petsc/frame.c, narrow.c), in bytes from A->data */
  struct {
    PetscBool hidden; /* a test has switched the search off */
    PetscBool asked, known, options;
    size_t    ij[2], a, door, bytes; /* bytes: size of the data */
    size_t    word[HYB_FRAME_OPTIONS];
    /* the word's bytes when an option is off, and when it is on */
    unsigned char held[HYB_FRAME_SETTINGS][2][sizeof(PetscInt)];
    /* used by the search: number of the function that was called, -1: none */
    int       called;
    PetscBool flagsasked, flagsknown, blocksknown;
    size_t    flag[2];     /* of a MATMPIAIJ: places of MAT_ROW_ORIENTED and MAT_IGNORE_OFF_PROC_ENTRIES */
    size_t    block[2];    /* of a MATMPIAIJ: places of the pointers to its blocks */
    void (*shut[7])(void); /* the door of a matrix where it is shut (storage/hostonly.c) */
  } frame;
  struct {
    PetscBool asked, found, known;
    int       n; /* arrays of a number for each row: two of lengths, and in some releases the diagonal's places */
    size_t    array[3], longest, nonempty;
    size_t    more;      /* bytes that such an array has beside the rows' numbers where PETSc is told of one row */
    PetscBool listknown; /* where the rows that have entries are listed, if few have */
    size_t    list;
    struct { /* who asks the allocator for so many bytes gets more, and where these are is noted */
      HybWatcher watcher;
      size_t     asked, given;
      int        n;
      void      *at[3], *list;
    } room;
  } narrow;
  /* arrays of a matrix that may have been given to another one (petsc/storage/given.c) */
  struct {
    PetscBool          parallel, kept, ours; /* ours: the pattern, too */
    PetscCount         lent, made;           /* whose values were lent last, and how many had been made then */
    HybArena           arrays, moved;
    const PetscInt    *i;
    const PetscScalar *a;
    PetscScalar       *former;
  } given;
  struct { /* the allocator, while the parent duplicates (petsc/storage/hostcopy.c) */
    HybWatcher watcher;
    int        depth;
    PetscBool  keeps;               /* pages of what is given back */
    PetscInt  *last;                /* row offset to be cut, NULL once it is */
    size_t     touched;             /* bytes; larger blocks are not touched: all cores write them */
    size_t     wanted, seen, least; /* bytes; blocks smaller than the least are not noted */
    int        n;
    struct {
      char  *at;
      size_t bytes;
    } block[HYB_WATCHED];
  } watch;
  struct { /* blocks of matrices that went, kept for the next ones (petsc/storage/rowblocks.c) */
    HybRowBlock kept[HYB_ROWBLOCKS_KEPT], noted[HYB_ROWBLOCKS_NOTED];
    int         n;                                                   /* kept */
    size_t      bytes;                                               /* of these */
    PetscErrorCode (*free)(void *, int, const char[], const char[]); /* PETSc's, while a matrix goes */
  } rowblocks;
} HybGlue;

PETSC_INTERN HybGlue HybGlueState;
PETSC_INTERN void    HybGlueClear(void);

/* bytes that this process took over the bus; what page faults move is not among them */
static inline PetscErrorCode HybLogToDevice(PetscLogDouble bytes)
{
  HybGlueState.counts.todevice += bytes;
  HybGlueState.counts.ntodevice++;
  return PetscLogCpuToGpu(bytes);
}
static inline PetscErrorCode HybLogToHost(PetscLogDouble bytes)
{
  HybGlueState.counts.tohost += bytes;
  HybGlueState.counts.ntohost++;
  return PetscLogGpuToCpu(bytes);
}

/* container.c, besides what hybmat.h has */
PETSC_INTERN void HybOpsOver(Mat A, const struct _MatOps *ours, const struct _MatOps *parents, PetscBool on);

/* options.c */
PETSC_INTERN PetscErrorCode HybOptionsRead(void);
PETSC_INTERN PetscErrorCode HybOptionsReadReports(void);
PETSC_INTERN PetscErrorCode HybOptionsHelp(void);
/* the k-th of all options, NULL behind the last one */
PETSC_INTERN const HybOption *HybOptionAt(PetscInt);
/* names on stderr the options that look like the type's own and are none */
PETSC_INTERN PetscErrorCode HybOptionsTellUnknown(void);
PETSC_INTERN PetscErrorCode HybGlueReadChoices(HybChoices *);
PETSC_INTERN PetscErrorCode HybChoicesSetFromOptions(HybChoices *, HybOptionItems);

/* process.c */
PETSC_INTERN PetscErrorCode HybEventsRegister(void);
PETSC_INTERN PetscErrorCode HybGlueDescribeMemory(char text[], size_t length, PetscBool *any);
PETSC_INTERN PetscErrorCode HybGlueCountProduct(const char *method);
PETSC_INTERN PetscErrorCode HybGlueFinalize(void);

/* device.c: the device library, opened at first use; NULL if there is none (an error if it is required) */
PETSC_INTERN PetscErrorCode HybGlueGetDevice(PetscBool required, const HybBackend **);
/* *none: there is no device, or none to come, before anything needs one */
PETSC_INTERN PetscErrorCode HybGlueExpectDevice(PetscBool *none);
PETSC_INTERN PetscErrorCode HybGlueDeviceExec(const HybBackend *, HybExec *);
/* what was kept from an earlier operation, with the stream of now */
PETSC_INTERN PetscErrorCode HybExecRefresh(HybExec *x);
static inline PetscBool     HybExecOnDevice(const HybExec *x)
{
  return x->backend->device;
}
/* of an operation that ran there; where PETSc has no devices it counts none of theirs */
static inline PetscErrorCode HybLogFlops(const HybExec *x, PetscLogDouble flops)
{
  PetscFunctionBegin;
  if (HybExecOnDevice(x) && PetscDefined(HAVE_DEVICE))
    PetscCall(PetscLogGpuFlops(flops));
  else
    PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
