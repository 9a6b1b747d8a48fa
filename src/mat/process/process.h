/*
  What belongs to the process and not to one matrix: the options that are read once, the device and its stream,
  counters, events, what is reported at the end. All of it is one struct, HybGlueState, which registration clears.
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
#define HYB_NAME_LENGTH 32
typedef struct {
  PetscInt backend; /* HybBackendChoice */
  char     spgemm[HYB_NAME_LENGTH];
  char     spmv[HYB_NAME_LENGTH];
  PetscInt width; /* rowmerge */
} HybChoices;

/* What is counted in any case; report.c takes it together with the memory's figures for all that tells of it */
typedef struct {
  PetscLogDouble todevice, tohost;   /* bytes over the bus */
  PetscCount     ntodevice, ntohost; /* in so many transfers */
  PetscCount     mults, assemblies, products, fallbacks, fallbacksasked, deviceops;
  PetscCount     gamg[HYB_GAMG_COUNTS];
  PetscCount     stagedmults; /* products on the device with a vector of the host's */
  /* products of parallel matrices with vectors on the device to which others' entries came through the host */
  PetscCount     hosthalos;
  PetscLogDouble hosthalobytes; /* so many bytes of them */
  char           halofrom[96];  /* by what way, and why */
  /* operations that -mat_aijhybridgpu_device_min left on the host, and the most nonzeros of one */
  PetscCount belowmin, belowminmost;
  char       methods[512]; /* names of the methods that computed products, colon-separated */
  char       parents[32];  /* the last algorithm of AIJ's that was asked for */
} HybCounts;

/* What the host of this process was in, while a report is made (waiting.c) */
typedef enum {
  HYB_SPENT_TODEVICE, /* copies over the bus */
  HYB_SPENT_TOHOST,
  HYB_SPENT_DEVICE, /* waits for the device */
  HYB_SPENT_KINDS
} HybSpent;
typedef struct {
  PetscCount     calls[HYB_SPENT_KINDS];
  PetscLogDouble seconds[HYB_SPENT_KINDS];
} HybSpending;

/* Options of the process; options.c has their names, defaults and texts */
typedef struct {
  char     cudalibrary[PETSC_MAX_PATH_LEN], viewcounts[PETSC_MAX_PATH_LEN], report[PETSC_MAX_PATH_LEN];
  PetscInt device;                          /* which card; -1: PETSc's, else by turns */
  PetscInt devicemin;                       /* nonzeros; -1: by where the vectors are, see HybGlueDeviceMin() */
  PetscInt mirror, promotenever, commaware; /* commaware: 1: no, 2: yes */
  PetscInt lockafter;                       /* values sent so many times again move to page-locked memory; 0: never */
  /* fewer bytes of values stay where they are: they are soon through the buffers, which are page-locked as well */
  PetscInt  lockmin;
  PetscInt  planmin;   /* patterns of so many nonzeros are planned for at their second product with a vector */
  PetscInt  narrowmin; /* a device's results of so many rows become AIJ's without loops over these */
  PetscInt  viewmemory, unknownoptions, frameunknown, ahead, smoothers, parallelproducts;
  PetscReal managedlimit, memorylimit, locklimit;
} HybOptions;

typedef enum {
  HYB_DEVICE_UNKNOWN, /* not asked yet */
  HYB_DEVICE_NONE,    /* there is none that can be used: whynodevice says why */
  HYB_DEVICE_READY
} HybDeviceStatus;

/* What the type knows of a matrix; where: its state's name in docs/architecture.md */
typedef struct {
  const char *where;
  PetscCount  nnz, sendings;
  size_t      hostbytes, devicebytes;
} HybRecordFacts;
typedef PetscBool (*HybRecordDescribe)(Mat, HybRecordFacts *); /* false: nothing is known */

/* What runs on the device as one operation of Mat: each has an event of its own under PETSc's, by which -log_view and
   the tests know that the device did it */
typedef enum {
  HYB_OP_MULT, /* with a vector, transposed or not, added or not */
  HYB_OP_SCALE,
  HYB_OP_ZERO,
  HYB_OP_DIAGONALSCALE,
  HYB_OP_GETDIAGONAL,
  HYB_OP_DIAGONALSET,
  HYB_OP_NORM,
  HYB_OP_DUPLICATE,
  HYB_OP_COPY,
  HYB_OP_AXPY,
  HYB_OP_TRANSPOSE,
  HYB_OP_SUBMATRIX,
  HYB_OP_COOPATTERN,
  HYB_OP_COOVALUES,
  HYB_OP_CONVERT,
  HYB_OP_DENSE,
  HYB_OP_ZEROS, /* of the diagonal, counted */
  HYB_OP_NOISE, /* in a vector */
  HYB_OPS
} HybOp;

typedef struct {
  PetscLogEvent op[HYB_OPS], productsymbolic, productnumeric, adopt, check, copyto, copyfrom, hostduplicate, transpose, narrow;
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

/* Options of MatSetOption() that AIJ keeps in its data: those of a group share a word there (petsc/frame.c) */
typedef enum {
  HYB_ASKED_ROW_ORIENTED,
  HYB_ASKED_KEEP_PATTERN,
  HYB_ASKED_IGNORE_ZEROS,
  HYB_ASKED_NEW_NONZEROS,
  HYB_ASKED_GROUPS, /* those that a duplicate takes over */
  HYB_ASKED_UNUSED = HYB_ASKED_GROUPS,
  HYB_ASKED_INODES, /* the search ends it too, where it found nothing */
  HYB_FRAME_OPTIONS
} HybAskedGroup;
#define HYB_FRAME_SETTINGS 8 /* options in these groups */

typedef struct {
  PetscBool registered;
  /* the parents' operations, copied from pristine objects, and functions composed on these */
  PetscBool      captured_seq, captured_mpi;
  struct _MatOps seq, mpi;
  struct _MatOps own; /* those of the sequential type */
  struct {            /* and, of those, what a matrix that lives on the device has besides */
    PetscErrorCode (*copy)(Mat, Mat, MatStructure);
    PetscErrorCode (*axpy)(Mat, PetscScalar, Mat, MatStructure);
  } born;
  /* what lower files call of higher ones: the family's, set at registration */
  PetscErrorCode (*compose)(Mat, PetscBool seq, PetscBool on);
  PetscErrorCode (*convertfrom)(Mat, MatType, MatReuse, Mat *);
  PetscErrorCode (*convertany)(Mat, MatType, MatReuse, Mat *); /* from the sequential type */
  PetscErrorCode (*convertseq)(Mat, MatType, MatReuse, Mat *); /* to it, from its parent */
  PetscErrorCode (*composeparents)(Mat, PetscBool on);
  PetscErrorCode (*productsetfromoptions[2])(Mat); /* of sequential, of parallel matrices */
  void (*storevalues)(void), (*retrievevalues)(void), (*setpreallocation)(void), (*resetpreallocation[2])(void), (*setcolumnindices)(void), (*resethash)(void), (*kron)(void), (*coopreallocation[2])(void), (*coovalues[2])(void), (*multsf)(void);
  HybConverter converters[8]; /* the parent's, in the order of seq/convert.c */
  PetscBool    convertersknown;
  PetscBool    zeroknown, zerowins; /* is zero times NaN zero in the parent's MatScale()? */
  /* options */
  PetscBool  optionsread;
  HybOptions options;
  HybChoices choices;
  /* counters */
  HybEvents         event;
  HybCounts         counts;
  PetscCount        made;           /* private data of sequential matrices, ever */
  int               productrefuses; /* AIJ's parallel A B says MAT_NO_OFF_PROC_ENTRIES: 1, or -1; 0: not looked yet */
  HybRecordDescribe describe;       /* what the type knows of a matrix */
  /* of PETSC_COMM_WORLD, once a parallel matrix has used it: what it opened is not opened again for the next one */
  HybComm world;
  /* of each matrix and operation, for -mat_aijhybridgpu_report; NULL: not asked for */
  struct _HybRecords *records;
  HybSpending         spent;
  /* the device's table where its waits are timed, else unused; and the one that it calls */
  HybBackend        watched;
  const HybBackend *unwatched;
  /* nonzeros that the host has multiplied with vectors while the device was not open */
  PetscLogDouble hostwork;
  PetscBool      toldhostvectors;
  PetscBool      atexit; /* the process will write its report, if nobody has */
  /* device */
  HybDeviceStatus   devicestatus;
  const HybBackend *device;
  HybMem            deviceresult; /* memory of results on it */
  char              whynodevice[512];
  PetscBool         streamknown;
  void             *stream;        /* of the last operation on the device */
  PetscBool         nopetscstream; /* PETSc's own device is unusable: ours has a stream that nobody shares */
  PetscBool         onhost;        /* HybMatOnHost() */
  struct {                         /* PETSc's, while it is watched (petsc/allocator.c) */
    HybMallocFn before;
    HybWatcher *top;
  } allocator;
  /* the places in AIJ's data that were found (petsc/frame.c, narrow.c), bytes from A->data */
  struct {
    PetscBool     asked, known, options;
    size_t        ij[2], a, door, bytes; /* bytes: of them all */
    size_t        word[HYB_FRAME_OPTIONS];
    unsigned char held[HYB_FRAME_SETTINGS][2][sizeof(PetscInt)]; /* what is there when an option is off and on */
    int           called;                                        /* by the search */
    PetscBool     flagsasked, flagsknown, blocksknown;
    size_t        flag[2];  /* of a MATMPIAIJ: rows are given by rows, and other processes' entries left out */
    size_t        block[2]; /* of a MATMPIAIJ: pointers to its blocks */
  } frame;
  struct {
    PetscBool asked, found, known;
    int       n; /* arrays of a number for each row: two of lengths, and in some releases the diagonal's places */
    size_t    array[3], longest, nonempty;
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
} HybGlue;

PETSC_INTERN HybGlue HybGlueState;
PETSC_INTERN void    HybGlueClear(void);

/* waiting.c: the device's table, watched where a report is made */
PETSC_INTERN const HybBackend *HybBackendWatch(const HybBackend *);

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

/* container.c, besides what hybmat.h has: puts a function over the parent's of that name, which is kept in *parents, or
   the parent's back */
PETSC_INTERN PetscErrorCode HybComposeOver(PetscObject, const char *name, void (*ours)(void), void (**parents)(void), PetscBool on);
PETSC_INTERN PetscErrorCode HybOpsOver(Mat A, const struct _MatOps *ours, const struct _MatOps *parents, PetscBool on);

/* options.c */
PETSC_INTERN PetscErrorCode HybOptionsRead(void);
PETSC_INTERN PetscErrorCode HybOptionsReadReports(void);
PETSC_INTERN PetscErrorCode HybOptionsHelp(void);
/* the k-th option's name, and whether it may stand under a matrix's prefix; NULL behind the last one */
PETSC_INTERN const char *HybOptionName(PetscInt, PetscBool *ofmatrix);
/* names on stderr the options that look like the type's own and are none */
PETSC_INTERN PetscErrorCode HybOptionsTellUnknown(void);
PETSC_INTERN PetscErrorCode HybGlueReadChoices(HybChoices *);
PETSC_INTERN PetscErrorCode HybChoicesSetFromOptions(HybChoices *, HybOptionItems);

/* report.c */
PETSC_INTERN PetscErrorCode HybEventsRegister(void);
PETSC_INTERN PetscErrorCode HybGlueDescribeMemory(char text[], size_t length, PetscBool *any);
PETSC_INTERN PetscErrorCode HybGlueCountProduct(const char *method);
PETSC_INTERN PetscErrorCode HybReportBegin(void);
PETSC_INTERN PetscErrorCode HybGlueFinalize(void);

/*
  records.c: what was done with which matrix, for the report of the run. All of it is behind one look at
  HybGlueState.records, which is NULL where no report was asked for.
*/
typedef enum { /* records.c has the names, in this order */
               HYB_RECORD_MULT,
               HYB_RECORD_MULTADD,
               HYB_RECORD_RESIDUAL,
               HYB_RECORD_MULTTRANSPOSE,
               HYB_RECORD_MULTTRANSPOSEADD,
               HYB_RECORD_SYMBOLIC, /* of a product; its type is the detail */
               HYB_RECORD_NUMERIC,  /* the first time */
               HYB_RECORD_AGAIN,
               HYB_RECORD_FACTOR,
               HYB_RECORD_GHOSTS, /* of a parallel matrix: the wait for other processes' entries of a vector */
               HYB_RECORD_EVENTS  /* from here on: of HYB_Event(k) */
} HybRecordOp;

PETSC_INTERN PetscErrorCode HybRecordsCreate(struct _HybRecords **);
PETSC_INTERN PetscErrorCode HybRecordsDestroy(struct _HybRecords **);
PETSC_INTERN PetscErrorCode HybRecordStart(HybRecordOp, Mat, const HybExec *);
PETSC_INTERN PetscErrorCode HybRecordStop(HybRecordOp, Mat, const HybExec *, const char *method, const char *detail, PetscLogDouble flops, PetscLogDouble bytes);
PETSC_INTERN void           HybRecordWhy(const char *text);
PETSC_INTERN void           HybRecordTried(HybRecordOp, const char *method, PetscLogDouble own, PetscLogDouble other, PetscLogDouble took);
PETSC_INTERN void           HybRecordMade(Mat C, const char *by, Mat from);
PETSC_INTERN void           HybRecordParts(Mat A, Mat diagonal, Mat offdiagonal);
PETSC_INTERN void           HybRecordLeft(Mat A);
PETSC_INTERN HybRecordOp    HybRecordOfEvent(PetscLogEvent);

#define HybRecording()                                       PetscUnlikely(HybGlueState.records != NULL && !HybGlueState.onhost)
#define HybRecordBegin(op, A, x)                             (HybRecording() ? HybRecordStart(op, A, x) : PETSC_SUCCESS)
#define HybRecordEnd(op, A, x, method, detail, flops, bytes) (HybRecording() ? HybRecordStop(op, A, x, method, detail, flops, bytes) : PETSC_SUCCESS)
/* why the operation that is about to end was done by this method */
#define HybRecordTell(text) (HybRecording() ? HybRecordWhy(text) : (void)0)
/* C is a product's result; from: of P^T A P, A */
#define HybRecordProduct(C, by, from) (HybRecording() ? HybRecordMade(C, by, from) : (void)0)
/* of a parallel matrix */
#define HybRecordBlocks(A, d, o) (HybRecording() ? HybRecordParts(A, d, o) : (void)0)
/* A is about to go: its name is known now, and its blocks' with it */
#define HybRecordGone(A) (HybRecording() ? HybRecordLeft(A) : (void)0)

/* an event of ours, in PETSc's log and in the records */
static inline PetscErrorCode HybEventBegin(PetscLogEvent event, Mat A, void *b, void *c, void *d)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(event, A, (PetscObject)b, (PetscObject)c, (PetscObject)d));
  PetscCall(HybRecordBegin(HybRecordOfEvent(event), A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
static inline PetscErrorCode HybEventEnd(PetscLogEvent event, Mat A, void *b, void *c, void *d)
{
  PetscFunctionBegin;
  PetscCall(HybRecordEnd(HybRecordOfEvent(event), A, NULL, "", "", 0, 0));
  PetscCall(PetscLogEventEnd(event, A, (PetscObject)b, (PetscObject)c, (PetscObject)d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* device.c: the device library, opened at first use; NULL if there is none (an error if it is required) */
PETSC_INTERN PetscErrorCode HybGlueGetDevice(PetscBool required, const HybBackend **);
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
