/*
  The report of a run (-mat_aijhybridgpu_report): what is collected, and who writes it.

    records.c   while the program runs: per matrix, folded into kinds of matrices where a matrix goes
    waiting.c   while it runs: how long the host waited, and copied over the bus
    run.c       while it runs: set-ups and solves, by PETSc's own events
    moments.c   while it runs: what is held, over time; at the end: how fast the device's memory is
    report.c    at the end: each process's account, all processes' kinds on the first one
    advice.c    what could be done about it
    json.c      one form of it, the data
    html.c, tables.c, pieces.c   the other one, the page, which has json.c's text in it

  Kinds and accounts are plain structs without pointers, which go from process to process as they are. The writers use
  stdio alone, so that they also work when PETSc or MPI have ended.
*/
#ifndef AIJHYBRIDGPU_REPORT_H
#define AIJHYBRIDGPU_REPORT_H

#include "record.h"
#include <stdio.h>

#define HYB_REPORT_FORMAT   2 /* of the data; docs/reportdata.md */
#define HYB_RECORDS_LEAVING 256
#define HYB_RECORD_LINES    24
#define HYB_RECORD_KINDS    128
#define HYB_RECORD_WORD     24
#define HYB_RECORD_LABEL    48
#define HYB_ADVICE          5
#define HYB_MOMENTS         240 /* of a run: even, since two become one as it goes on */
#define HYB_RECORD_WHY      320 /* the methods of two stages, with what they count */

/* bytes over the bus and straight to other cards, and seconds that the host waited for its device or for others */
typedef struct {
  PetscLogDouble todevice, tohost, tocards, waited;
} HybMoved;

/* PETSc's events that are listened to (run.c): set-ups, solves, what is within a solve, what GAMG does */
#define HYB_RUN_LIST(EVENT)          \
  EVENT(KSPSETUP, "KSPSetUp")        \
  EVENT(PCSETUP, "PCSetUp")          \
  EVENT(ONBLOCKS, "PCSetUpOnBlocks") \
  EVENT(SOLVE, "KSPSolve")           \
  EVENT(APPLY, "PCApply")            \
  EVENT(GRAPH, " PCGAMGCreateG")     \
  EVENT(COARSEN, " GAMG Coarsen")    \
  EVENT(PROLONGATOR, " PCGAMGProl")  \
  EVENT(SMOOTH, " PCGAMGOptProl")    \
  EVENT(LEVEL, " PCGAMGCreateL")
#define HYB_RUN_NUMBER(event, name) HYB_RUN_##event,
typedef enum {
  HYB_RUN_LIST(HYB_RUN_NUMBER) HYB_RUN_EVENTS
} HybRunEvent;
/* Parts of the run, none within another one */
typedef enum {
  HYB_PART_OUTSIDE,
  HYB_PART_SETUP,
  HYB_PART_SOLVE, /* but for PCApply() */
  HYB_PART_APPLY,
  HYB_PARTS
} HybRunPart;
/* Zero: not told */
typedef struct {
  PetscInt64 calls[HYB_PARTS], iterations; /* iterations: of outermost solves */
  /* of the parts; outside is between set-ups and solves */
  PetscLogDouble before, seconds[HYB_PARTS], after;
  PetscLogDouble ours[HYB_PARTS]; /* in operations of the type */
} HybRun;
static inline PetscLogDouble HybRunSolves(const HybRun *run)
{
  return run->seconds[HYB_PART_SOLVE] + run->seconds[HYB_PART_APPLY];
}
/* What goes on */
typedef PetscErrorCode (*HybRunListener)(PetscLogEvent, int, PetscObject, PetscObject, PetscObject, PetscObject);
typedef struct {
  HybRun         sum;
  PetscLogEvent  event[HYB_RUN_EVENTS];
  int            depth[HYB_RUN_EVENTS], inside; /* inside: of so many kinds of set-ups and solves */
  PetscLogDouble last;                          /* the part began */
  HybRunPart     part;
  PetscBool      any;      /* there was a set-up or a solve */
  HybRunEvent    outer;    /* the outermost one, and whose it is */
  PetscObjectId  id, pc;   /* pc: of a solve, its preconditioner */
  HybRunListener below[2]; /* the logger that was there before */
#if HYB_HAS_LOG_HANDLERS
  PetscLogHandler handler;
#endif
} HybRunLog;

/* What the host of this process was in (waiting.c) */
typedef enum {
  HYB_SPENT_TODEVICE, /* copies over the bus */
  HYB_SPENT_TOHOST,
  HYB_SPENT_DEVICE,    /* waits for the device */
  HYB_SPENT_PROCESSES, /* and for other processes, which the room comm counts */
  HYB_SPENT_KINDS
} HybSpent;
typedef struct {
  PetscCount     calls[HYB_SPENT_KINDS], solvecalls[HYB_SPENT_KINDS]; /* solve: those in solves */
  PetscLogDouble seconds[HYB_SPENT_KINDS], solveseconds[HYB_SPENT_KINDS];
} HybSpending;

/* One operation by one method on one side. On a device some calls are timed, and stand for others: see
   HybRecordWeight(). */
typedef struct {
  HybRecordOp op;
  char        where[8]; /* host, device; "": not told */
  char        method[HYB_RECORD_WORD], detail[HYB_RECORD_WORD];
  /* figures that the method was chosen by, and what it met, of the last time that it was planned for */
  char           why[HYB_RECORD_WHY];
  PetscInt64     calls, timed, stood;               /* stood: so many calls have their time in seconds */
  PetscLogDouble seconds, last, flops, bytes, mean; /* of the process that took longest; mean: over the processes */
  PetscLogDouble in[HYB_PARTS];                     /* of this process, which part of the run they were in */
  HybMoved       moved;                             /* of all processes; waited: of the one that waited longest */
} HybRecordLine;

typedef enum {
  HYB_ROLE_MATRIX,
  HYB_ROLE_DIAGONAL, /* block of a parallel matrix */
  HYB_ROLE_OFFDIAGONAL,
  HYB_ROLE_PARALLEL, /* the parallel matrix itself: nothing runs on it but by its parts */
  HYB_ROLE_PART,     /* a sequential matrix in a parallel run: of a product's parts, mostly */
  HYB_ROLE_OTHER     /* there were too many kinds */
} HybRole;

/* By what matrices are put together */
typedef struct {
  HybRole role;
  /* so many Galerkin products from a matrix that is none: its level of multigrid, 0 the finest */
  int depth;
  /* it has been A or the result of a P^T A P */
  int grid;
  /* PETSc's number in the prefix, 0 the coarsest; -1: none there */
  int level;
  /* origin: the product's type that it was made by; of: what it is of GAMG's */
  char name[HYB_RECORD_LABEL], prefix[HYB_RECORD_LABEL], origin[HYB_RECORD_WORD], of[HYB_RECORD_WORD];
  /* of the whole matrix; 0 for parts, which differ by process */
  PetscInt64 rows, cols;
} HybRecordKey;

typedef struct {
  HybRecordKey   key;
  PetscInt64     matrices, nnz, sendings; /* nnz: of the largest one, all processes together */
  PetscLogDouble hostbytes, devicebytes;  /* the same */
  char           where[12];               /* where the last one was at the end */
  int            nlines;
  HybRecordLine  lines[HYB_RECORD_LINES];
} HybRecordKind;

/* What is held over time: the most in each of n equal parts of the run. The part is doubled when there would be too
   many. */
typedef struct {
  int    n;
  double interval;
  size_t last[3]; /* at the end of the last operation */
  size_t peak[2]; /* the most there ever was of device and managed memory, by then */
  size_t bytes[HYB_MOMENTS][3];
} HybMoments;
enum {
  HYB_MOMENT_DEVICE,
  HYB_MOMENT_MANAGED,
  HYB_MOMENT_HOST,
  HYB_MOMENT_KINDS
};

/* What one process says of itself */
typedef struct {
  PetscMPIInt     rank;
  int             nkinds;
  HybCounts       counts;
  HybMemoryReport host, device;
  HybDeviceStatus status;
  char            node[64], backend[16], card[96], driver[48], why[256];
  double          rate; /* bytes a second that the device's memory reads and writes in a copy; 0: not measured */
  HybMoments      moments;
  HybSpending     spent;
  HybCommTally    sent;
  HybRun          run;
} HybAccount;

typedef struct {
  char           text[320], option[120];
  PetscLogDouble weight; /* seconds, or what would be seconds: the heaviest come first */
} HybAdvice;

/* What the writers get */
typedef struct {
  const char      *program, *options, *petsc, *scalar, *ended; /* ended: "PetscFinalize", or how else */
  char             date[64];
  PetscBool        complete;    /* of all processes */
  PetscMPIInt      size, known; /* processes of the run, and of those that said something */
  HybBackendChoice choice;
  const char      *asked;   /* the choice's word */
  PetscLogDouble   seconds; /* since the library came */
  HybAccount      *accounts;
  int              nkinds, nadvice;
  HybRecordKind   *kinds;
  HybAdvice        advice[HYB_ADVICE];
} HybReport;

/* records.c */
typedef struct _HybRecord *HybRecord;
/* A call on a device by one of the backend's timers, whose time is not known yet */
typedef struct {
  HybRecord  record; /* NULL: it has not ended */
  int        line;
  PetscInt64 weight;
  HybRunPart part;
} HybRecordTimer;
/* An operation that is under way */
typedef struct {
  PetscBool      begun, timing;
  PetscInt64     timer; /* number of its timer; -1: a clock's */
  PetscLogDouble started;
  HybMoved       before; /* what had been moved when it began */
} HybRecordRunning;
typedef struct _HybRecords {
  /* of the run; for who cannot ask PETSc any more */
  char           file[PETSC_MAX_PATH_LEN], program[PETSC_MAX_PATH_LEN], petsc[128], ended[808];
  char          *options;
  PetscMPIInt    rank, size;
  pid_t          process;
  PetscLogDouble began;
  PetscBool      busy; /* a page is being written, or a signal came, after which none is */
  int            written;
  /* of the matrices */
  PetscInt live;
  /* by the objects' ids; last, those of matrices that have gone, while timers have calls of theirs */
  HybRecord         table[HYB_RECORDS_LEAVING + 1];
  HybRecordRunning  running[HYB_RECORD_OPS];
  HybRecordTimer    timer[HYB_TIMERS];   /* number k is timer[k % HYB_TIMERS] */
  PetscInt64        timers[2];           /* numbers timers[0] to timers[1]-1 are in use */
  char              why[HYB_RECORD_WHY]; /* for the next operation that ends */
  HybMoments        moments;
  HybRunLog         run;
  HybSpending       spent;
  HybRecordDescribe describe; /* what the type knows of a matrix */
  int               nkinds;
  /* HYB_RECORD_KINDS of each; merged: those of now, with the matrices that are still there */
  HybRecordKind *kinds, *merged;
} HybRecords;
PETSC_INTERN PetscErrorCode HybRecordsCreate(HybRecords **);
PETSC_INTERN PetscErrorCode HybRecordsDestroy(HybRecords **);
PETSC_INTERN const char    *HybRecordOpName(int op);
PETSC_INTERN const char    *HybRoleName(HybRole);
PETSC_INTERN void           HybKindName(const HybRecordKey *, char text[], size_t);
PETSC_INTERN void           HybKindLabel(const HybRecordKey *, char text[], size_t);
PETSC_INTERN void           HybRecordsCollect(HybRecords *, PetscInt64 wait);
/* into merged; how many. Neither asks PETSc nor allocates. */
PETSC_INTERN int       HybRecordsNow(HybRecords *);
PETSC_INTERN void      HybKindsMerge(HybRecordKind *into, int *n, const HybRecordKind *kind, PetscBool processes);
PETSC_INTERN double    HybKindSeconds(const HybRecordKind *);
PETSC_INTERN PetscBool HybOpIsMult(int op);
PETSC_INTERN PetscBool HybOpIsCoarsening(int op);
PETSC_INTERN PetscBool HybOpIsNested(int op);

/* run.c */
PETSC_INTERN PetscErrorCode HybRunBegin(HybRecords *);
PETSC_INTERN PetscErrorCode HybRunEnd(HybRecords *);
PETSC_INTERN void           HybRunGet(const HybRunLog *, PetscLogDouble now, HybRun *);
PETSC_INTERN const char    *HybRunMatrix(const HybRunLog *);

/* waiting.c */
PETSC_INTERN const HybBackend *HybBackendWatch(const HybBackend *);
PETSC_INTERN void              HybMovedGet(HybMoved *);
PETSC_INTERN void              HybMovedAdd(HybMoved *, const HybMoved *, PetscLogDouble sign);

/* moments.c */
PETSC_INTERN void           HybMomentTake(HybRecords *, PetscLogDouble now);
PETSC_INTERN PetscErrorCode HybRateMeasure(HybAccount *);

PETSC_INTERN int  HybUTF8(const unsigned char *);
PETSC_INTERN void HybReportAdvise(HybReport *);
PETSC_INTERN void HybReportJSON(FILE *, const HybReport *);
PETSC_INTERN void HybReportHTML(FILE *, const HybReport *);

#endif
